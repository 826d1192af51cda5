"""A trace of a few recurring jobs, in the files of Google 2011."""

JOBS_HEADER = "user,group,sched_class,submit_s,wait_s,run_s,end_event"


DEMAND_HEADER = (
    "job_id,user,group,sched_class,priority,submit_s,wait_s,run_s,end_event,n_tasks,cpu_req,mem_req,disk_req,spread"
)


def tiny_trace(folder, late=0.0):
    """Write a trace of two hourly jobs, one irregular and one with long runs; return the folder.

    Job (7, 3) runs 250 s every hour from 600 s on, 30 times; its 20th run comes ``late`` seconds
    late (and those after it on time). It asks for two nodes at production priority. Job (8, 4), of
    latency class 2, runs 1,400 s at half past, and is not in the file of demands.
    """
    rows = []
    for k in range(30):
        rows.append((7, 3, 0, 600.0 + 3600 * k + (late if k == 20 else 0), 250.0))
        rows.append((8, 4, 2, 2400.0 + 3600 * k, 1400.0))
        rows.append((9, 5, 0, 700.0 + 60 * k**2, 100.0))  # gaps that grow: not periodic
        rows.append((9, 6, 0, 800.0 + 3600 * k, 20_000.0))  # regular, but longer than 4 h
        rows.append((10, 7, 0, 0.0, 5.0))  # there before the trace starts
    rows.sort(key=lambda row: row[3])
    lines = [f"{u},{g},{k},{s},0.0,{r},4" for u, g, k, s, r in rows]
    (folder / "google2011_jobs_29d.csv").write_text("\n".join([JOBS_HEADER, *lines]) + "\n")
    demand = [f"{i},7,3,0,9,{600 + 3600 * i},0.0,250.0,4,2,0.0625,0.01,0.0,0" for i in range(5)]
    (folder / "google2011_jobs_demand_19h.csv").write_text("\n".join([DEMAND_HEADER, *demand]) + "\n")
    return folder
