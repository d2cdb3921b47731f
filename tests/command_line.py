"""What the tests of the command line share."""


def one_line(error):
    assert error.startswith("Error: ") and error.count("\n") == 1
    return error
