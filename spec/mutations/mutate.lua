-- spec/mutations/mutate.lua: all scripts that differ from one by a mistake of one word.
-- Stock Lua runs this too, which has no modules of ltrain.
local tokens_of = dofile((os.getenv "LT_ROOT" or ".") .. "/stdlib/core/tokens.lua").of_file

local DTYPES <const> = { f32 = "i64", i64 = "f32", f64 = "i32", bf16 = "u8", u8 = "f32" }

-- The token that closes the bracket at k.
local function closing(tokens, k)
  local depth = 0
  for j = k, #tokens do
    local t = tokens[j].text
    if tokens[j].kind == "sign" then
      if t == "(" or t == "{" or t == "[" then depth = depth + 1 end
      if t == ")" or t == "}" or t == "]" then depth = depth - 1 end
    end
    if depth == 0 then return j end
  end
end

-- The arguments of the call whose bracket is at k: pairs of first and last token.
local function arguments(tokens, k)
  local last, list, depth, from = closing(tokens, k), {}, 0, k + 1
  for j = k + 1, (last or k) - 1 do
    local t = tokens[j]
    if t.kind == "sign" and t.text:match "^[({%[]$" then depth = depth + 1 end
    if t.kind == "sign" and t.text:match "^[)}%]]$" then depth = depth - 1 end
    if t.kind == "keyword" and t.text == "function" then return {}, last end -- too long to drop
    if depth == 0 and t.text == "," then
      list[#list + 1] = { from, j - 1 }
      from = j + 1
    end
  end
  if last and from < last then list[#list + 1] = { from, last - 1 } end
  return list, last
end

local function is_call(tokens, k)
  local before = tokens[k - 1]
  return tokens[k].text == "(" and before and (before.kind == "name" or before.text == ")")
    and not (tokens[k - 2] and tokens[k - 2].text == "function")
    and not (tokens[k - 4] and tokens[k - 4].text == "function")
end

-- Two neighbouring letters in the middle of a word change places.
local function misspelt(word)
  for at = #word // 2, #word - 1 do
    local a, b = word:sub(at, at), word:sub(at + 1, at + 1)
    if a ~= b and at > 0 then return word:sub(1, at - 1) .. b .. a .. word:sub(at + 2) end
  end
end

-- One mistake each: what is replaced from token to token, by what; nil: there is none here.
local KINDS <const> = {}

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
        if load(changed, "=script", "t") then -- others are errors of Lua's compiler
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
