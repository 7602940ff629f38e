/* The lines of a trace about accesses and what they bring to light: see trace.c.  */
#ifdef GILSCOPE_TRACE
typedef struct { char text[1024]; } Text;

/* A location in an object: equal keys have equal texts.  Indexes and ranges can be read, of the rest only the hash.  */
static Text
trace_key(Key key)
{
    static const char tags[] = {[KEY_VALUE] = 'v', [KEY_INT] = 'i', [KEY_SAME] = 's', [KEY_PART] = 'p', [KEY_ATTR] = 'a',
                                [KEY_CELL] = 'c'};
    Text key_text;
    if (KEY_TAG(key.word) == KEY_INT) {
        snprintf(key_text.text, sizeof(key_text.text), "i%lld", (long long)key_as_int(key.word));
    }
    else if (KEY_TAG(key.word) == KEY_BOX) {
        const Box *box = KEY_POINTER(key.word);
        size_t n = 0;
        for (int axis = 0; axis < box->axes; axis++) {
            n += (size_t)snprintf(key_text.text + n, sizeof(key_text.text) - n, "b%lld,%lld,%lld",
                                  (long long)box->ranges[axis][0], (long long)box->ranges[axis][1],
                                  (long long)box->ranges[axis][2]);
        }
    }
    else {
        snprintf(key_text.text, sizeof(key_text.text), "%c%llx", tags[KEY_TAG(key.word)], (unsigned long long)key.hash);
    }
    return key_text;
}

/* The locks that a thread holds, outermost first, each with the number of its acquisition.  */
static Text
trace_held(const HeldLock *held, int n_held)
{
    Text held_text = {""};
    size_t n = 0;
    for (int i = 0; i < n_held; i++) {
        if (still_held(&held[i])) {
            n += (size_t)snprintf(held_text.text + n, sizeof(held_text.text) - n, " %u:%u", held[i].uid, held[i].serial);
        }
    }
    return held_text;
}

static void
trace_access(const Thread *thread, Record *record, Key key, int kind, const Site *site, int options, int loaded)
{
    trace("access %u %u %s %d %d %d %d %p%s", thread->uid, trace_number(&record->traced), trace_key(key).text, site->number,
          kind, options, loaded, activation(),
          trace_held(thread->held, thread->n_held).text);
}

static void
trace_whole(const Thread *thread, Record *record, const Site *site, const int64_t range[3])
{
    if (range == NULL) {
        trace("whole %u %u %d", thread->uid, trace_number(&record->traced), site->number);
        return;
    }
    trace("whole %u %u %d %lld %lld %lld", thread->uid, trace_number(&record->traced), site->number, (long long)range[0],
          (long long)range[1], (long long)range[2]);
}

static void
trace_found(Record *record, const Found *found, uint64_t key)
{
    const Access sides[2] = {found->first, found->second};
    uint32_t uids[2];
    const Where *where[2];
    for (int i = 0; i < 2; i++) {
        uids[i] = uid_of(sides[i].epoch);
        where[i] = where_at(sides[i].where);
    }
    trace("found %s %u %s %u %d %u %d %u %d %u %d", found->span ? "span" : "order",
          trace_number(&record->traced), trace_key((Key){key, key_hash(key)}).text,
          uids[0], where[0]->site, where[0]->kind, found->span && found->first_spans ? where[0]->span_site : -1,
          uids[1], where[1]->site, where[1]->kind, found->span && !found->first_spans ? where[1]->span_site : -1);
}

/* Its flags are those of the rewriter, and REMOVES.  */
static void
trace_site(const Site *site)
{
    char partners[1024] = "";
    size_t n = 0;
    for (int32_t i = 0; i < site->n_partners && n < sizeof(partners); i++) {
        n += (size_t)snprintf(partners + n, sizeof(partners) - n, " %d", site->partners[i]);
    }
    trace("site %d %u%s", site->number, site_flags(site->number), partners);
}

/* Once more in the trace of a forked child.  */
static void
trace_sites(void)
{
    for (int chunk = 0; chunk < SITE_CHUNK; chunk++) {
        for (int i = 0; site_objects[chunk] != NULL && i < SITE_CHUNK; i++) {
            if (site_objects[chunk][i] != NULL) {
                trace_site(site_objects[chunk][i]);
            }
        }
    }
}
#else
#define trace_access(...) ((void)0)
#define trace_whole(...) ((void)0)
#define trace_found(...) ((void)0)
#define trace_site(site) ((void)0)
#define trace_sites() ((void)0)
#endif
