--- stdlib/clusters/check.lua: what can be known to be wrong before ranks are joined.
--
-- MPI_Init prints its own text and aborts when a launch is not what it looks like; so nothing of
-- MPI is asked here, only variables.

--- What is wrong with joining the ranks of an environment, as a sentence that names it; or nil.
--- `devices` and `num_nodes` as far as they are known.
return function(environment, devices, num_nodes)
  local wrong = environment:refusal() or environment:validate(devices, num_nodes)
  return wrong and ("%s: %s"):format(environment.name or "cluster", wrong)
end
