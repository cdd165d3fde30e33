--- stdlib/cli/apps.lua: what the apps (stdlib/apps) add to the commands; nothing in a build without
--- them (LT_APPS=OFF).
local c = require "ltrain.c"

local NAME <const> = "ltrain.apps"

local function nothing() end

local NONE <const> = {
  rows = {}, options = {}, prepare = nothing, finish = nothing,
  open_prompt = function(host)
    host.complain "ltrain: this build has no prompt (LT_APPS=OFF)\n"
    return 2
  end,
}

return c.runtime.in_stdlib(NAME) and require(NAME) or NONE
