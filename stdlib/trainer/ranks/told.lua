--- stdlib/trainer/ranks/told.lua: what a rank has to tell that the others may have to tell too.
--
-- The ranks hear with the next step whether one has something. What all have to tell is told once;
-- what only some have, by each of them with its number.
local console = require "ltrain.core.console"
local dist = require "ltrain.dist"
local exchange = require "ltrain.trainer.ranks.exchange"

local told = {}

--- Has `text` told; on one rank at once.
function told.add(state, text)
  if not state.ranks.many then return console.say(text) end
  state.ranks.untold = state.ranks.untold or {}
  table.insert(state.ranks.untold, text)
end

--- How many are not told yet.
function told.count(state)
  return state.ranks.untold and #state.ranks.untold or 0
end

--- Tells them without asking the others, who may be gone.
function told.alone(state)
  local list = state.ranks.untold or {}
  state.ranks.untold = false
  for _, text in ipairs(list) do console.say_anywhere(text) end
end

--- Tells them; every rank comes here.
function told.together(state)
  local lists = exchange("warnings", dist.all_gather, state.ranks.untold or {})
  local ranks = {} -- that have to tell a text
  for _, list in ipairs(lists) do
    for _, text in ipairs(list) do ranks[text] = (ranks[text] or 0) + 1 end
  end
  local own = {}
  for _, text in ipairs(state.ranks.untold or {}) do
    if ranks[text] == #lists then console.say(text) else own[#own + 1] = text end
  end
  state.ranks.untold = own
  told.alone(state)
end

return told
