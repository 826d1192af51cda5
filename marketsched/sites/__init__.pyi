from .playing import run_sites as run_sites
