"""What the benchmarks measure extgate beside, where that takes more than an import."""
