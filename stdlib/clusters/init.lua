--- stdlib/clusters/init.lua: lt.clusters: environments, each the file of its name, and which of
--- them this process is in.
local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.clusters", "clusters",
  { "join", "register", environments = { "current", "detect" } })
