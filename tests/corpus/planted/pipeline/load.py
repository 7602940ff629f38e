"""A script: its own threads."""
from pipeline.flow import run

if __name__ == "__main__":
    for _ in range(3):
        assert len(run(range(200))) == 200
