"""A job that hangs: a product of matrices in the parent, then the same in a child that multiprocessing forks. numpy computes
on OpenBLAS, which computes on libgomp. Prints "done" if it ends."""
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
