"""Rounds that travel: what is cut out of one folder is what comes out of the other; nothing is lost on the way."""

import dataclasses
import json
import zlib

import pytest

from gilscope.toolkit.errors import BadFileError, LabelTakenError, SaveError
from gilscope.toolkit.model import Cell
from gilscope.toolkit.store import load_run, transfer_rounds
from gilscope.toolkit.store.header import HEADER, PENDING, replace_file
from gilscope.toolkit.store.transfer_rounds import RoundReceiver, SavePace, cut_block
from tests.fakes import RunMaker
from tests.test_store import write

CELLS = [Cell(workload="primes", runner=runner, workers=workers, build=build)
         for build in ("3.14", "3.14t") for runner, workers in (("serial", 1), ("subinterpreters", 2))]


def made(rounds, done=None):
    """Return a run of some rounds that says it has `done` of them."""
    maker = RunMaker(rounds=rounds)
    for number, cell in enumerate(CELLS):
        maker.measure(cell, 0.4 + number / 10)
    done = rounds if done is None else done
    return maker.run(("3.14", "3.14t"), rounds_done=done, cells=tuple(CELLS), label="there", rounds_planned=9,
                     stopped="interrupted")


@pytest.fixture
def there(tmp_path):
    return write(made(4), tmp_path, label="there", results=tmp_path)


@pytest.fixture
def blocks(tmp_path):
    """Return what is cut after each of four rounds."""
    return [cut_block(write(made(4, done=done), tmp_path, label=f"after-{done}", results=tmp_path), done - 1)
            for done in range(1, 5)]


@pytest.fixture
def here(tmp_path):
    with RoundReceiver(tmp_path / "fleet" / "host-1", "fleet/host-1", SavePace(clock=lambda: 0.0)) as arriving:
        yield arriving


def rounds_of(run):
    return {each.cell: [one.round for one in each.observations] for each in run.measurements}


def test_what_was_cut_out_comes_out(there, here):
    assert here.run is None
    assert here.receive(cut_block(there)).rounds_done == 4
    found, sent = load_run(here.path), load_run(there)
    assert found.label == "fleet/host-1"
    assert dataclasses.replace(found, label="there", measurements=()) == dataclasses.replace(sent, measurements=())
    assert {each.cell: each.observations for each in found.measurements} == {
        each.cell: each.observations for each in sent.measurements}


def test_rounds_come_one_after_the_other(blocks, here):
    for done, block in enumerate(blocks, start=1):
        assert here.receive(block).rounds_done == done
        assert set(map(tuple, rounds_of(load_run(here.path)).values())) == {tuple(range(done))}
    assert set(map(tuple, rounds_of(load_run(here.path)).values())) == {(0, 1, 2, 3)}


def test_a_round_that_is_not_complete_stays_behind(tmp_path, here):
    here.receive(cut_block(write(made(4, done=3), tmp_path, label="cut", results=tmp_path)))
    assert set(map(tuple, rounds_of(load_run(here.path)).values())) == {(0, 1, 2)}


def test_what_was_made_again_replaces_what_came_first(there, here, tmp_path):
    again = made(4)
    again = dataclasses.replace(again, measurements=tuple(dataclasses.replace(each, observations=tuple(
        dataclasses.replace(one, wall=(0.125,) * 3) if one.round == 3 else one for one in each.observations))
        for each in again.measurements))
    here.receive(cut_block(there))
    here.receive(cut_block(write(again, tmp_path, label="again", results=tmp_path), 3))
    assert {each.observations[3].wall for each in load_run(here.path).measurements} == {(0.125,) * 3}
    assert {len(each.observations) for each in load_run(here.path).measurements} == {4}


def test_blocks_wait_while_putting_them_away_takes_long_and_none_is_lost(blocks, tmp_path):
    ticks = iter(range(0, 10**6, 10))   # each look at the clock, ten seconds later
    path = tmp_path / "slow"
    with RoundReceiver(path, "slow", SavePace(clock=lambda: float(next(ticks)))) as arriving:
        for block in blocks:
            arriving.receive(block)
        assert arriving.rounds == 4
        assert len(list((path / PENDING).iterdir())) == 3   # the first took its time
        assert load_run(path).rounds_done == 1              # and who reads sees a whole run all the time
    # Somebody ended us here.
    with RoundReceiver(path, "slow") as arriving:
        assert arriving.rounds == 4
    assert not (path / PENDING).exists()
    assert set(map(tuple, rounds_of(load_run(path)).values())) == {(0, 1, 2, 3)}


def test_a_kill_while_blocks_are_put_away_leaves_what_can_be_read(blocks, tmp_path, monkeypatch):
    path = tmp_path / "slow"
    with RoundReceiver(path, "slow") as arriving:
        arriving.receive(blocks[0])
        arriving.merge()
    for number, block in enumerate(blocks[1:]):
        (path / PENDING).mkdir(exist_ok=True)
        (path / PENDING / f"{number:06d}").write_bytes(block)

    def killed_at_the_header(file, text):
        if file.name == HEADER:
            raise KeyboardInterrupt
        replace_file(file, text)

    with monkeypatch.context() as patch:
        patch.setattr(transfer_rounds, "replace_file", killed_at_the_header)
        with pytest.raises(KeyboardInterrupt):
            RoundReceiver(path, "slow")
    assert set(map(tuple, rounds_of(load_run(path)).values())) == {(0,)}
    RoundReceiver(path, "slow").close()
    assert set(map(tuple, rounds_of(load_run(path)).values())) == {(0, 1, 2, 3)}


def test_a_block_that_the_disk_had_no_room_for_goes_with_those_that_are_put_away(blocks, tmp_path):
    path = tmp_path / "full"
    with RoundReceiver(path, "full") as arriving:
        arriving.receive(blocks[0])
    (path / PENDING).mkdir()
    (path / PENDING / transfer_rounds._PART).write_bytes(blocks[2][:9])
    (path / PENDING / "000001").write_bytes(blocks[1])
    with RoundReceiver(path, "full") as arriving:
        assert arriving.rounds == 2
    assert not (path / PENDING).exists()


def test_what_is_kept_can_be_sent_back(there, here, tmp_path):
    here.receive(cut_block(there))
    with RoundReceiver(tmp_path / "back", "back") as back:
        back.receive(cut_block(here.path))
    assert rounds_of(load_run(tmp_path / "back")) == rounds_of(load_run(there))


@pytest.mark.parametrize(("block", "said"), [
    (b"nothing", "cannot be read"),
    (zlib.compress(b"{}"), "it is no block of rounds"),
    (zlib.compress(b'{"header": {}, "suites": {}}')[:-4], "it is cut off"),
    (zlib.compress(json.dumps({"header": {}, "suites": {"3.14": []}}).encode()), "the suite is"),
])
def test_what_is_no_block_is_refused_and_changes_nothing(block, said, there, here):
    here.receive(cut_block(there))
    before = {path: path.read_bytes() for path in here.path.iterdir() if path.is_file()}
    with pytest.raises(BadFileError, match=said):
        here.receive(block)
    assert {path: path.read_bytes() for path in here.path.iterdir() if path.is_file()} == before


def test_values_of_a_build_that_the_run_has_not_are_refused(there, here):
    fields = json.loads(zlib.decompress(cut_block(there)))
    fields["suites"]["../../up"] = fields["suites"].pop("3.14")
    with pytest.raises(BadFileError, match="which it has no build of"):
        here.receive(zlib.compress(json.dumps(fields).encode()))
    assert list(here.path.glob("*.json")) == []


def test_two_do_not_keep_the_same_run(here):
    with pytest.raises(LabelTakenError):
        RoundReceiver(here.path, "fleet/host-1")


def test_a_disk_that_cannot_be_written_is_said(there, here):
    (here.path / PENDING).write_text("in the way")
    with pytest.raises(SaveError, match="everything saved before is intact"):
        here.receive(cut_block(there))
