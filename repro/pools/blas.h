// The functions of the BLAS that the cases use. They are declared here because the BLAS's own header comes with a
// package that chooses an implementation.
#pragma once

enum { kRowMajor = 101, kNoTranspose = 111 };
void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double* a,
                 int lda, const double* b, int ldb, double beta, double* c, int ldc);

// c = a * b, square matrices of n rows.
static inline void blas_product(int n, const double* a, const double* b, double* c) {
  cblas_dgemm(kRowMajor, kNoTranspose, kNoTranspose, n, n, n, 1.0, a, n, b, n, 0.0, c, n);
}
