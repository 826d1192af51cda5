from . import explaining as explaining
