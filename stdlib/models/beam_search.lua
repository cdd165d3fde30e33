-- stdlib/models/beam_search.lua: the search of lt.generate for the likeliest sequences, which keeps
-- the best `num_beams` beginnings of each.
-- N sequences, K beams of each, T positions, V vocabulary.
--
-- As in Hugging Face's generate, a sequence that stops leaves the beams if it is among the best K
-- of its step, and its score is the sum of its log-probabilities / (added tokens) ^ length_penalty.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

-- Adds a sequence that has ended, if it is one of the best K.
local function add(ended, k, ids, sum, length, penalty)
  local one <const> = { ids = ids, score = sum / length ^ penalty }
  local at = #ended + 1
  while at > 1 and ended[at - 1].score < one.score do at = at - 1 end
  table.insert(ended, at, one)
  ended[k + 1] = nil
end

-- Whether the search for one sequence is over: `best` is the sum of its first beam.
local function is_over(ended, best, length, o)
  if #ended < o.num_beams then return false end
  if o.early_stopping == true then return true end
  local longest <const> = o.early_stopping == "never" and o.length_penalty > 0
  local within <const> = longest and o.max_new_tokens or length
  return ended[#ended].score >= best / within ^ o.length_penalty
end

-- The best continuations: lists by sequence of sums, and of places in its [K, V], from 0.
local function continuations(logits, sums, n, count)
  local all <const> = (logits:log_softmax(-1) + sums:unsqueeze(2)):reshape(n, -1)
  local best <const>, places = all:topk(math.min(count, all.shape[2]), { dim = 2 })
  return best:tolist(), places:tolist()
end

-- One step of one sequence: those that stop are added to `one.ended`; returns the next beams {row
-- within the sequence, id, sum}, as many as there are up to K.
local function step(one, best, places, all, first_row, length, v, stops, o)
  local beams = {}
  for rank, sum in ipairs(best) do
    if sum == -math.huge or #beams == o.num_beams then break end
    local row <const>, id = places[rank] // v, places[rank] % v
    if not stops[id] then
      beams[#beams + 1] = { row = row, id = id, sum = sum }
    elseif rank <= o.num_beams then
      local whole <const> = c.cat({ all[first_row + row], c.full({ 1 }, id,
        { dtype = all.dtype, device = all.device }) }, 1)
      add(one.ended, o.num_beams, whole, sum, length, o.length_penalty)
    end
  end
  one.over = #beams == 0 or is_over(one.ended, beams[1].sum, length, o)
  return beams
end

-- Sequences of several lengths as rows, filled up with `id`.
local function as_rows(list, id)
  local longest = 0
  for _, ids in ipairs(list) do longest = math.max(longest, ids.shape[1]) end
  for j, ids in ipairs(list) do
    local missing <const> = longest - ids.shape[1]
    list[j] = missing == 0 and ids or c.cat({ ids, c.full({ missing }, id,
      { dtype = ids.dtype, device = ids.device }) }, 1)
  end
  return c.stack(list, 1)
end

-- The best sequences of each, and their scores.
local function best_of(searches, stop, o)
  local list, scores = {}, {}
  for _, one in ipairs(searches) do
    if #one.ended < o.num_return_sequences then
      errors.blame("generate: num_return_sequences = %d: the search has found %d sequences",
        o.num_return_sequences, #one.ended)
    end
    for j = 1, o.num_return_sequences do
      list[#list + 1], scores[#scores + 1] = one.ended[j].ids, one.ended[j].score
    end
  end
  return as_rows(list, stop[1]), c.tensor(scores)
end

--- source.logits(all, new) are the logits [N * K, V] of the next ids, source.reorder(index) makes
--- rows of the batch the next ones. Returns ids [N * num_return_sequences, T] and their scores.
---@param all Tensor [N, T]
return function(source, all, stop, o)
  local n <const>, k, stops, searches = all.shape[1], o.num_beams, {}, {}
  for _, id in ipairs(stop) do stops[id] = true end
  for j = 1, n do searches[j] = { ended = {}, over = false } end
  local function integers(list) return c.tensor(list, { dtype = "i64", device = all.device }) end
  local rows, sums = {}, {} -- at first each sequence has one beam
  for row = 0, n * k - 1 do
    rows[row + 1], sums[row + 1] = row // k, row % k == 0 and 0 or -math.huge
  end
  local logits = source.logits(all):index_select(1, integers(rows))
  source.reorder(integers(rows))
  all = all:index_select(1, integers(rows))
  for length = 1, o.max_new_tokens do
    local best <const>, places = continuations(logits,
      c.tensor(sums, { dtype = logits.dtype, device = logits.device }), n,
      math.max(2, 1 + #stop) * k)
    local ids, is_over_for_all = {}, true
    for j, one in ipairs(searches) do
      local beams <const> = one.over and {} or step(one, best[j], places[j], all, (j - 1) * k + 1,
        length, logits.shape[2], stops, o)
      is_over_for_all = is_over_for_all and one.over
      for b = 1, k do -- a row without a beam has no chance
        local beam <const>, at = beams[b] or { row = 0, id = 0, sum = -math.huge }, (j - 1) * k + b
        rows[at], ids[at], sums[at] = (j - 1) * k + beam.row, beam.id, beam.sum
      end
    end
    local index <const>, new = integers(rows), integers(ids):to(all.dtype):unsqueeze(2)
    all = c.cat({ all:index_select(1, index), new }, 2)
    if is_over_for_all or length == o.max_new_tokens then break end
    source.reorder(index)
    logits = source.logits(all, new)
  end
  for at, sum in ipairs(sums) do -- those that have not stopped
    local one <const> = searches[(at - 1) // k + 1]
    if not one.over and sum > -math.huge then
      add(one.ended, k, all[at], sum, o.max_new_tokens, o.length_penalty)
    end
  end
  return best_of(searches, stop, o)
end
