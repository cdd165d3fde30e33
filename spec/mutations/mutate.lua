-- spec/mutations/mutate.lua: all scripts that differ from one by a mistake of one word.
-- Stock Lua runs this too, which has no modules of ltrain.
local calls = require "spec.mutations.calls"
local habits = require "spec.mutations.habits"
local tokens_of = dofile((os.getenv "LT_ROOT" or ".") .. "/stdlib/core/tokens.lua").of_file

local arguments <const>, closing <const> = calls.arguments, calls.closing
local is_call <const>, text_of <const> = calls.is_call, calls.text_of
local DTYPES <const> = { f32 = "i64", i64 = "f32", f64 = "i32", bf16 = "u8", u8 = "f32" }

-- Two neighbouring letters in the middle of a word change places.
local function misspelt(word)
  for at = #word // 2, #word - 1 do
    local a, b = word:sub(at, at), word:sub(at + 1, at + 1)
    if a ~= b and at > 0 then return word:sub(1, at - 1) .. b .. a .. word:sub(at + 2) end
  end
end

-- One mistake each: what is replaced from token to token, by what; nil: there is none here.
local KINDS <const> = {}
for kind, find in pairs(habits) do KINDS[kind] = find end

function KINDS.argument_dropped(tokens, k)
  if not is_call(tokens, k) then return end
  local list, last = arguments(tokens, k)
  if #list == 0 then return end
  return k, last, #list == 1 and "()" or nil, list
end

function KINDS.dim_changed(tokens, k)
  local t = tokens[k]
  if t.kind == "number" and t.text:match "^%d+$" then
    return k, k, tostring(math.tointeger(t.text) + 1)
  end
end

function KINDS.number_as_text(tokens, k)
  local t = tokens[k]
  if t.kind == "number" then return k, k, '"' .. t.text .. 'x"' end
end

function KINDS.name_misspelt(tokens, k)
  local t, before, after = tokens[k], tokens[k - 1], tokens[k + 1]
  if t.kind ~= "name" or #t.text < 3 or not before or before.text == "local" then return end
  local is_field = before.text == "." or before.text == ":"
  local is_option = after and after.text == "=" and (before.text == "{" or before.text == ",")
  local other = (is_field or is_option) and misspelt(t.text)
  if other then return k, k, other end
end

function KINDS.word_misspelt(tokens, k)
  local t = tokens[k]
  if t.kind ~= "string" or not t.text:match '^"[%a_]+"$' or #t.text < 5 then return end
  local other = misspelt(t.text:sub(2, -2))
  if other and tokens[k - 1].text ~= "require" then return k, k, '"' .. other .. '"' end
end

function KINDS.nil_for_a_layer(tokens, k)
  local dot, name, equals, from = tokens[k], tokens[k + 1], tokens[k + 2], tokens[k + 3]
  if dot.text ~= "." or not from or equals.text ~= "=" or name.kind ~= "name" then return end
  if tokens[k - 1].text ~= "self" or from.text ~= "nn" and from.text ~= "lt" then return end
  for j = k + 3, #tokens do
    if tokens[j].text == "(" or tokens[j].text == "{" then
      return k + 3, closing(tokens, j), "nil"
    end
  end
end

function KINDS.dtype_changed(tokens, k)
  local t = tokens[k]
  local other = t.kind == "string" and DTYPES[t.text:sub(2, -2)]
  if other then return k, k, '"' .. other .. '"' end
end

function KINDS.dot_for_colon(tokens, k)
  if tokens[k].text == ":" and tokens[k - 2].text ~= "function" then return k, k, "." end
end

function KINDS.colon_for_dot(tokens, k)
  local call = tokens[k + 2]
  if tokens[k].text == "." and call and call.text == "(" and tokens[k - 2]
    and tokens[k - 2].text ~= "function" then
    return k, k, ":"
  end
end

function KINDS.return_dropped(tokens, k)
  local t = tokens[k]
  if t.text == "return" and tokens[k + 1] and tokens[k + 1].text ~= "end" then
    return k, k, "local _ ="
  end
end

function KINDS.arguments_swapped(tokens, k)
  if not is_call(tokens, k) then return end
  local list = arguments(tokens, k)
  if #list < 2 or text_of(tokens, list[1]) == text_of(tokens, list[2]) then return end
  return list[1][1], list[2][2], text_of(tokens, list[2]) .. ", " .. text_of(tokens, list[1])
end

function KINDS.self_forgotten(tokens, k)
  local name = tokens[k + 1]
  if tokens[k].text == ":" and tokens[k - 2].text == "function" and name then return k, k, "." end
end

function KINDS.self_left_out(tokens, k)
  local dot = tokens[k + 1]
  if tokens[k].text == "self" and dot and dot.text == "." then return k, k + 1, "" end
end

function KINDS.index_from_zero(tokens, k)
  local t, before, after = tokens[k], tokens[k - 1], tokens[k + 1]
  if t.kind == "number" and t.text == "1" and before.text == "[" and after.text == "]" then
    return k, k, "0"
  end
end

-- Labels, the second of a batch, as floats.
function KINDS.labels_as_floats(tokens, k)
  if tokens[k].text == "batch" and tokens[k + 1].text == "[" and tokens[k + 2].text == "2"
    and tokens[k + 3].text == "]" then
    return k, k + 3, "batch[2]:float()"
  end
end

-- Another word for an option.
function KINDS.option_of_another_kind(tokens, k)
  local t, before = tokens[k], tokens[k - 1]
  local first = tokens[k - 3]
  if before.text ~= "=" or not first or not first.text:match "^[{,]$" then return end
  if t.text == "true" or t.text == "false" then return k, k, '"yes"' end
  if t.kind == "string" then return k, k, "true" end
  if t.kind == "number" then return k, k, "{" .. t.text .. "}" end
end

function KINDS.bracket_more(tokens, k)
  if not is_call(tokens, k) then return end
  local list, last = arguments(tokens, k)
  local first = list[1] and tokens[list[1][1]].text
  if #list < 1 or first ~= "nn" then return end
  return k + 1, last - 1, "{{" .. text_of(tokens, { k + 1, last - 1 }) .. "}}"
end

-- One of a list of layers or tensors is nil.
function KINDS.hole_in_a_list(tokens, k)
  if tokens[k].text ~= "{" then return end
  local list, depth, from = {}, 0, k + 1
  local last = closing(tokens, k)
  for j = k + 1, (last or k) - 1 do
    local t = tokens[j]
    if t.text == "=" and depth == 0 or t.text == "function" then return end
    if t.kind == "sign" and t.text:match "^[({%[]$" then depth = depth + 1 end
    if t.kind == "sign" and t.text:match "^[)}%]]$" then depth = depth - 1 end
    if t.text == "," and depth == 0 then
      list[#list + 1], from = { from, j - 1 }, j + 1
    end
  end
  if last and #list > 0 then list[#list + 1] = { from, last - 1 } end
  if #list > 1 then return list[1][1], list[1][2], "nil" end
end

-- A hook whose last line, the `return` of its value, is gone.
function KINDS.returns_nothing(tokens, k)
  if tokens[k].text ~= "return" then return end
  for j = k + 1, math.min(k + 40, #tokens) do
    local t = tokens[j]
    if t.text == "function" or t.text == "then" or t.text == "do" then return end
    if t.text == "end" and t.line > tokens[k].line then
      if tokens[j - 1].line ~= tokens[k].line then return end
      return k, j - 1, ""
    end
  end
end

-- Of which those that do not compile are wanted too.
local COMPILER <const> = { comma_lost = true, word_of_python = true }

local function replaced(text, tokens, from, to, by)
  return text:sub(1, tokens[from].from - 1) .. by .. text:sub(tokens[to].to + 1)
end

-- A text for each argument that the call at k may lack.
local function without_arguments(text, tokens, k, list)
  local texts = {}
  for n, gone in ipairs(list) do
    local from, to = gone[1], gone[2]
    if n > 1 then from = from - 1 elseif #list > 1 then to = to + 1 end
    texts[n] = replaced(text, tokens, from, to, "")
  end
  return texts
end

--- Returns a list of {kind =, line =, text =, was =}: the script with one mistake each, and what of
--- its line was changed.
return function(text)
  local tokens, list = tokens_of(text), {}
  for k = 2, #tokens - 1 do
    for kind, find in pairs(KINDS) do
      local from, to, by, dropped = find(tokens, k)
      local texts = dropped and without_arguments(text, tokens, k, dropped)
        or from and { replaced(text, tokens, from, to, by) } or {}
      for n, changed in ipairs(texts) do
        -- Others are errors of Lua's compiler.
        if COMPILER[kind] or load(changed, "=script", "t") then
          list[#list + 1] = { kind = kind, line = tokens[k].line, text = changed,
                              at = tokens[from].from, n = n }
        end
      end
    end
  end
  table.sort(list, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    if a.kind ~= b.kind then return a.kind < b.kind end
    return a.n < b.n
  end)
  return list
end
