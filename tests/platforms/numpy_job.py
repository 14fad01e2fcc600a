"""A job that hangs. The parent multiplies matrices. Then multiprocessing forks a child, which also multiplies matrices.
numpy uses OpenBLAS, which uses libgomp. The job prints "done" if the child ends with status 0."""
import multiprocessing

import numpy


def multiply():
    numbers = numpy.ones((700, 700))
    return float((numbers @ numbers)[0, 0])


if __name__ == "__main__":
    multiply()
    worker = multiprocessing.get_context("fork").Process(target=multiply)
    worker.start()
    worker.join()
    print("done" if worker.exitcode == 0 else f"the child ended with {worker.exitcode}")
