-- A partition whose jobs a market starts: what comes here has to name a job of the market that was announced by the same
-- user with as many nodes, or to bring its statement of work along. It is then held until the market's bridge lets it
-- start. Nobody but root and Slurm's own user may let it start, or change what was announced.
-- Written by `marketsched live slurm-plugin`, which fills in the six values.
local ANNOUNCED = nil
local PARTITION = nil
local IS_DEFAULT = nil
local CHECK_USERS = nil
local OPERATOR = nil
local FREE_QOS = nil

local function of_market(job, partitions)
  if job.partition == nil or job.partition == "" then
    local own = partitions ~= nil and partitions[PARTITION] or nil
    return IS_DEFAULT or (own ~= nil and own.flag_default ~= nil and own.flag_default ~= 0)
  end
  for name in string.gmatch(job.partition, "[^,]+") do
    if name == PARTITION then return true end
  end
  return false
end

local function refuse(text)
  slurm.log_user("market: %s", text)
  return slurm.ERROR
end

-- Owner and nodes under which a name was announced; nil, reason where it was not.
local function announced(name)
  local file = io.open(ANNOUNCED, "r")
  if file == nil then return nil, "the market's bridge has not written its table yet; try again" end
  for line in file:lines() do
    local job, owner, nodes = string.match(line, "^(%S+) (%S+) (%d+)$")
    if job == name then
      file:close()
      return owner, tonumber(nodes)
    end
  end
  file:close()
  return nil, name .. " is not announced, or has come already (marketsched live submit; then wait a second)"
end

-- What would take more than was announced, or a place without using it; nil where there is nothing of that kind.
local function more_than_announced(job)
  if job.partition ~= nil and job.partition ~= "" and job.partition ~= PARTITION then
    return "expected --partition=" .. PARTITION .. " alone: a job of the market waits in no other"
  end
  if job.array_inx ~= nil and job.array_inx ~= "" then
    return "expected no --array: each task is announced by itself"
  end
  if job.het_job_offset ~= nil and job.het_job_offset < slurm.NO_VAL then
    return "expected one job, not several joined by ':'"
  end
  if FREE_QOS ~= nil and job.qos ~= nil and job.qos ~= "" and job.qos ~= FREE_QOS then
    return "expected no --qos: the market decides which nodes are regular"
  end
  if job.begin_time ~= nil and job.begin_time > os.time() then
    return "expected no --begin: a job comes when it is ready, and the market starts it"
  end
end

local function wanted_nodes(job)
  if job.min_nodes ~= nil and job.min_nodes ~= slurm.NO_VAL then return job.min_nodes end
  return 1
end

function slurm_job_submit(job, partitions, uid)
  if not of_market(job, partitions) then return slurm.SUCCESS end
  local name = string.match(job.comment or "", "^market:%s*(.+)$")
  if name == nil then
    return refuse("expected --comment=market:JOB, the name under which its statement of work was submitted")
  end
  local why = more_than_announced(job)
  if why ~= nil then return refuse(why) end
  if job.max_nodes ~= nil and job.max_nodes ~= slurm.NO_VAL and job.max_nodes ~= wanted_nodes(job) then
    return refuse("expected one number of nodes, such as --nodes=" .. wanted_nodes(job))
  end
  if string.sub(name, 1, 1) ~= "{" then
    local owner, nodes = announced(name)
    if owner == nil then return refuse(nodes) end
    if CHECK_USERS and owner ~= job.user_name then return refuse(name .. " belongs to another user") end
    if nodes ~= wanted_nodes(job) then
      return refuse(name .. " was announced with " .. nodes .. " nodes: expected --nodes=" .. nodes)
    end
  end
  job.priority = 0
  job.requeue = 0
  if FREE_QOS ~= nil then job.qos = FREE_QOS end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  if record.partition ~= PARTITION and not (job.partition ~= nil and of_market(job)) then return slurm.SUCCESS end
  if uid == 0 or uid == OPERATOR then return slurm.SUCCESS end
  return refuse("jobs of the market are changed by its bridge alone; scancel ends one")
end

return slurm.SUCCESS
