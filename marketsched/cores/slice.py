"""What the allocation cores add to the tables of `marketsched.mechanisms.registry`: names only, nothing is loaded."""

_ALLOCATION = "marketsched.mechanisms.allocation"
_POLICIES = "marketsched.cores.sections.policies"
_KINDS = "marketsched.cores.results.policies_kind"

ENTRIES = {
    "section": {"cluster": "marketsched.cores.sections.core:read_cluster"},
    "run": {"cluster": "marketsched.cores.playing:run_policies"},
    "contest": {"cluster": "marketsched.cores.comparing:PolicyContest"},
    "over": {"cluster": "marketsched.cores.over:compare_over"},
    "audit": {"cluster": "marketsched.cores.audit.core_audit:audit_cores"},
    "command": {"audit published": "marketsched.cores.command:audit_published"},
    "scenarios": {"cores": "marketsched.cores.scenarios"},
    "result": {
        "cluster": f"{_KINDS}:RunKind",
        "policies": f"{_KINDS}:ComparisonKind",
        "over": f"{_KINDS}:OverKind",
        "core-lies": "marketsched.cores.results.core_lies_kind:CoreLiesKind",
    },
    "experiments": {
        "ogasched": "marketsched.cores.papers.ogasched",
        "esdp": "marketsched.cores.papers.esdp",
        "opm": "marketsched.cores.papers.opm",
        "regrets": "marketsched.cores.papers.regrets",
    },
    "policy": {
        "ogasched": f"{_POLICIES}:OgaSchedPolicy",
        "drf": f"{_ALLOCATION}:Drf",
        "fairness": f"{_ALLOCATION}:Fairness",
        "binpacking": f"{_ALLOCATION}:BinPacking",
        "spreading": f"{_ALLOCATION}:Spreading",
        "gang-oga": f"{_POLICIES}:GangOgaPolicy",
        "esdp": f"{_ALLOCATION}:Esdp",
        "highest-utility-first": f"{_ALLOCATION}:HighestUtilityFirst",
        "lowest-cost-first": f"{_ALLOCATION}:LowestCostFirst",
        "longest-waiting-first": f"{_ALLOCATION}:LongestWaitingFirst",
        "cucb": f"{_ALLOCATION}:Cucb",
        "thompson": f"{_ALLOCATION}:ThompsonSampling",
        "follow-the-leader": f"{_ALLOCATION}:FollowTheLeader",
        "opm": f"{_POLICIES}:OpmPolicy",
        "fair": f"{_ALLOCATION}:FairScheduler",
        "deadline-aware": f"{_ALLOCATION}:DeadlineAware",
        "state-seeing-fair": f"{_ALLOCATION}:StateSeeingFair",
    },
}
