/* Called with the GIL held, which guards the state. */
static volatile long ticks;

long tick(void)
{
    long now = ticks;
    now = now + 1;
    ticks = now;
    return now;
}

long ticks_so_far(void)
{
    return ticks;
}
