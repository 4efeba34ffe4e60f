"""The routes: spellings of the verbs of `admin` and `remote`, which decide nothing."""
