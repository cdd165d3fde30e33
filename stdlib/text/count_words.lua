-- stdlib/text/count_words.lua: word counts of training texts, computed in C.

local c = require "ltrain.c"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

-- One text after the other: of one string, a list, or a function that returns them and then nil.
local function each(texts, where)
  if type(texts) == "string" then texts = { texts } end
  if type(texts) == "function" then return texts end
  if type(texts) ~= "table" then
    errors.blame("%s: texts must be a string, a list of strings or a function that returns one "
      .. "after the other: got %s", where, errors.show(texts))
  end
  if texts[1] == nil and next(texts) ~= nil then
    errors.blame("%s: texts must be a list of strings: got a table with '%s': the texts come "
      .. "first, the options after them", where, tostring((next(texts))))
  end
  local k, n = 0, elements.count(texts)
  return function()
    k = k + 1
    if k <= n and texts[k] == nil then
      errors.blame("%s: texts[%d] must be a string: got nil", where, k)
    end
    return texts[k]
  end
end

--- A trainer (lua/bind/data/text_train.c) that has seen all texts. `where` begins errors.
return function(texts, pattern, lowercase, where)
  local trainer, message = c.text.trainer(pattern, lowercase)
  if not trainer then errors.blame("%s: %s", where, message) end
  for text in each(texts, where) do
    if type(text) ~= "string" then
      errors.blame("%s: texts must be strings: got %s", where, errors.show(text))
    end
    trainer:add(text)
  end
  return trainer
end
