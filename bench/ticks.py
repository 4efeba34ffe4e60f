"""The program of the schedulers that are measured: it declares nothing, it fires what is there."""

from tenure import Tenure

app = Tenure(program="bench-schedulers")
