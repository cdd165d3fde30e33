--- stdlib/trainer/ranks/rank_warnings.lua: collects the warnings of all ranks, and prints each
--- once: on rank 0 if all ranks have it, else with its rank.
--
-- With each step the ranks exchange how many are pending. A text that all ranks have is printed
-- once, one that only some have is printed by each of them, with its rank.
local console = require "ltrain.core.console"
local dist = require "ltrain.dist"
local exchange = require "ltrain.trainer.ranks.exchange"

local rank_warnings = {}

--- Adds `text`; with one rank it is printed at once.
function rank_warnings.add(state, text)
  if not state.ranks.many then return console.say(text) end
  state.ranks.notices = state.ranks.notices or {}
  table.insert(state.ranks.notices, text)
end

--- Returns how many are not printed yet.
function rank_warnings.count(state)
  return state.ranks.notices and #state.ranks.notices or 0
end

--- Prints them without a collective: other ranks may have ended.
function rank_warnings.report(state)
  local list = state.ranks.notices or {}
  state.ranks.notices = false
  for _, text in ipairs(list) do console.say_anywhere(text) end
end

--- Prints them; called by every rank.
function rank_warnings.report_together(state)
  local lists = exchange("warnings", dist.all_gather, state.ranks.notices or {})
  local ranks = {} -- that have a text
  for _, list in ipairs(lists) do
    for _, text in ipairs(list) do ranks[text] = (ranks[text] or 0) + 1 end
  end
  local own = {}
  for _, text in ipairs(state.ranks.notices or {}) do
    if ranks[text] == #lists then console.say(text) else own[#own + 1] = text end
  end
  state.ranks.notices = own
  rank_warnings.report(state)
end

return rank_warnings
