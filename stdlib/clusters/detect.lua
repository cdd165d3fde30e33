--- stdlib/clusters/detect.lua: lt.clusters.detect: which launcher started this process.
local config = require "ltrain.core.config"
local known = require "ltrain.clusters.known"

local OPTIONS <const> = {
  variables = { type = "table", doc = "stand for the process's environment variables" },
}

--- The environment, the text that shows it, and a list of {name =, text =} of what was seen but is
--- no launch: lt.clusters.detect{variables = {...}}.
return function(options)
  local variables = config.check(options, OPTIONS, "clusters.detect").variables
  local seen = {}
  for _, entry in ipairs(known.list()) do
    local environment = entry.class { variables = variables }
    environment.name = entry.name
    local evidence, other = environment:detect()
    if evidence then return environment, evidence, seen end
    if other then seen[#seen + 1] = { name = entry.name, text = other } end
  end
end
