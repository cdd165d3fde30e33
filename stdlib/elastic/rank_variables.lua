--- stdlib/elastic/rank_variables.lua: the environment variables of a rank that `ltrain launch`
--- starts: those of torchrun, and LTRAIN_* (stdlib/clusters/Launch.lua reads them).

--- The list of "NAME=value" of a rank.
---@param round table of Rendezvous:join
---@param local_rank integer its number on this host, from 0
---@param own table {job = id, error_file = path, more = a list of other variables}
return function(round, local_rank, own)
  local list <const> = {
    "MASTER_ADDR=" .. round.address,
    ("MASTER_PORT=%d"):format(round.port),
    ("RANK=%d"):format(round.first_rank + local_rank),
    ("WORLD_SIZE=%d"):format(round.world_size),
    ("LOCAL_RANK=%d"):format(local_rank),
    ("LOCAL_WORLD_SIZE=%d"):format(round.slots),
    ("GROUP_RANK=%d"):format(round.index - 1),
    ("GROUP_WORLD_SIZE=%d"):format(round.hosts),
    "LTRAIN_LAUNCH=" .. own.job,
    ("LTRAIN_TOKEN=%s %d"):format(own.job, round.number),
    ("LTRAIN_INCARNATION=%d"):format(round.number),
    "LTRAIN_REASON=" .. round.reason,
    "LTRAIN_ERROR_FILE=" .. own.error_file,
    round.seed and ("LTRAIN_SEED=%d"):format(round.seed) or nil,
  }
  return table.move(own.more, 1, #own.more, #list + 1, list)
end
