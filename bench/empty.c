/* A library that does nothing, to measure what any preloaded library costs. */
int forksight_bench_nothing;
