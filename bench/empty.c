/* A library that does nothing. With it, the benchmarks measure the time that any preloaded library adds. */
int forksight_bench_nothing;
