-- spec/mutations/habits.lua: mistakes that come from habits of Python and PyTorch, and of haste.
--
-- Each kind is a function of the tokens and a place: what is replaced, from token to token, by
-- what; nil where there is no such mistake.
local calls = require "spec.mutations.calls"

local arguments <const>, closing <const>, text_of <const> =
  calls.arguments, calls.closing, calls.text_of
local PYTHON <const> = { ["true"] = "True", ["false"] = "False", ["nil"] = "None" }

local habits = {}

local function is_whole(token) return token.kind == "number" and token.text:match "^%d+$" end

-- Whether the token at k is an argument of a call, alone.
local function is_argument(tokens, k)
  local before, after = tokens[k - 1].text, tokens[k + 1] and tokens[k + 1].text
  return (before == "(" or before == ",") and (after == ")" or after == ",")
end

-- dim 0 for dim 1.
function habits.number_less(tokens, k)
  if is_whole(tokens[k]) and is_argument(tokens, k) then
    return k, k, tostring(tokens[k].text - 1)
  end
end

function habits.number_negative(tokens, k)
  local t = tokens[k]
  if is_whole(t) and t.text ~= "1" and tokens[k - 1].text ~= "-" then return k, k, "-" .. t.text end
end

function habits.number_in_quotes(tokens, k)
  if tokens[k].kind == "number" and tokens[k - 1].text ~= "-" then
    return k, k, '"' .. tokens[k].text .. '"'
  end
end

function habits.equals_turned(tokens, k)
  local t = tokens[k].text
  if t == "==" then return k, k, "~=" elseif t == "~=" then return k, k, "==" end
end

-- x:name(...) as x.name, not called.
function habits.call_forgotten(tokens, k)
  if tokens[k].text ~= ":" or tokens[k - 2].text == "function" then return end
  local last = tokens[k + 2] and tokens[k + 2].text == "(" and closing(tokens, k + 2)
  if last then return k, last, "." .. tokens[k + 1].text end
end

-- A method of tensors, called on the result of self:parameters() or of a constructor.
function habits.method_of_a_list(tokens, k)
  if tokens[k].text ~= "parameters" or tokens[k + 1].text ~= "(" then return end
  return k + 2, k + 2, "):detach()"
end

function habits.word_of_python(tokens, k)
  local word = PYTHON[tokens[k].text]
  if word then return k, k, word end
end

-- A variable, not a field or an option.
function habits.variable_misspelt(tokens, k)
  local t, before, after = tokens[k], tokens[k - 1].text, tokens[k + 1].text
  if t.kind ~= "name" or #t.text < 2 or before == "." or before == ":" or before == "local" then
    return
  end
  if after == "=" or after == "<" or before == "function" or before == "for" then return end
  return k, k, t.text .. "s"
end

-- The token of the `end` of the block that is open at k; nil where there is none.
local OPENS <const> = { ["function"] = true, ["do"] = true, ["then"] = true, ["repeat"] = true }
local CLOSES <const> = { ["end"] = true, ["until"] = true, ["elseif"] = true }
local function block_end(tokens, k)
  local depth = 1
  for j = k, #tokens do
    if tokens[j].kind == "keyword" then
      if OPENS[tokens[j].text] then depth = depth + 1 end
      if CLOSES[tokens[j].text] then depth = depth - 1 end
    end
    if depth == 0 then return j end
  end
end

-- `local nn` within a function, which hides that of the file.
function habits.upvalue_hidden(tokens, k)
  if tokens[k].text ~= ")" then return end
  local open = k - 1
  while open > 1 and tokens[open].text:find "^[%w_.:,]+$" do open = open - 1 end
  local from = open
  while from > 1 and open - from < 5 and tokens[from].text ~= "function" do from = from - 1 end
  if tokens[open].text ~= "(" or tokens[from].text ~= "function" then return end
  for j = k + 1, (block_end(tokens, k + 1) or k) - 1 do
    local t = tokens[j].text
    if (t == "nn" or t == "lt") and tokens[j + 1].text == "." then
      return k, k, ") local " .. t
    end
  end
end

-- What is lost of the loss: its gradient, its being a tensor, its mean.
function habits.loss_detached(tokens, k)
  if tokens[k].text == "return" and tokens[k + 1].text == "loss" then
    return k + 1, k + 1, "loss:detach()"
  end
end

function habits.loss_as_number(tokens, k)
  if tokens[k].text == "return" and tokens[k + 1].text == "loss" then
    return k + 1, k + 1, "loss:item()"
  end
end

function habits.loss_of_each(tokens, k)
  local open = tokens[k + 1]
  if open.text ~= "(" or not tokens[k].text:find "_loss$" and tokens[k].text ~= "cross_entropy" then
    return
  end
  local list, last = arguments(tokens, k + 1)
  if #list == 2 then return last, last, ', {reduction = "none"})' end
end

-- A tensor of several elements where one is logged.
function habits.log_of_many(tokens, k)
  if tokens[k].text ~= "log" or tokens[k - 1].text ~= ":" then return end
  local list = arguments(tokens, k + 1)
  if list[2] then return list[2][1], list[2][2], 'require "ltrain".ones(3)' end
end

-- The class in place of what it makes.
function habits.class_for_object(tokens, k)
  if tokens[k - 1].text ~= "." or not tokens[k].text:find "^%u" or tokens[k + 1].text ~= "(" then
    return
  end
  local last = closing(tokens, k + 1)
  if last then return k, last, tokens[k].text end
end

function habits.require_misspelt(tokens, k)
  local t = tokens[k]
  if tokens[k - 1].text == "require" and t.kind == "string" then
    return k, k, t.text:sub(1, -2) .. 's"'
  end
end

-- The options of another constructor.
function habits.option_elsewhere(tokens, k)
  if tokens[k].text ~= "{" or not tokens[k + 1] or tokens[k + 1].kind ~= "name"
    or tokens[k + 2].text ~= "=" then
    return
  end
  for j = k + 1, #tokens - 3 do
    local t = tokens[j]
    if t.text == "{" and tokens[j + 1].kind == "name" and tokens[j + 2].text == "="
      and tokens[j + 1].text ~= tokens[k + 1].text and tokens[j + 3].kind ~= "name" then
      local name, value = tokens[j + 1].text, tokens[j + 3].text
      if tokens[j + 3].kind == "number" or tokens[j + 3].kind == "string" or value == "true" then
        return k, k, ("{%s = %s, "):format(name, value)
      end
    end
  end
end

-- { "a" "b" }: most are an error of Lua's compiler; the comma after the last item may go.
function habits.comma_lost(tokens, k)
  if tokens[k].text == "," and tokens[k + 1].text ~= "}" then return k, k, " " end
end

-- A statement of one line is missing.
function habits.line_dropped(tokens, k)
  local t, before = tokens[k], tokens[k - 1]
  if t.line == before.line then return end
  local last = k
  while tokens[last + 1] and tokens[last + 1].line == t.line do last = last + 1 end
  if t.text == "local" and tokens[k + 1].text == "function" then return end
  if last > k then return k, last, "" end
end

-- The line comes after the next.
function habits.lines_swapped(tokens, k)
  local t = tokens[k]
  if t.line == tokens[k - 1].line then return end
  local last = k
  while tokens[last + 1] and tokens[last + 1].line == t.line do last = last + 1 end
  local to = last
  local next_line = tokens[last + 1] and tokens[last + 1].line
  while tokens[to + 1] and tokens[to + 1].line == next_line do to = to + 1 end
  if to == last then return end
  return k, to, text_of(tokens, { last + 1, to }) .. "\n" .. text_of(tokens, { k, last })
end

return habits
