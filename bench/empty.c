/* A library that does nothing: what any preload costs. */
int forksight_bench_nothing;
