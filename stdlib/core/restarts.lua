--- stdlib/core/restarts.lua: what a launcher that starts ranks again and those ranks agree on.
return {
  --- Exit status of a rank that stopped between two batches because it was asked to (SIGUSR1).
  STOPPED = 75,

  -- What lt.clusters.join found in the environment: how often the ranks of this job have been
  -- started again, and why.
  incarnation = 0,
  reason = "",
}
