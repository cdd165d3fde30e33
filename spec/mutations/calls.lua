-- spec/mutations/calls.lua: calls and brackets in a list of tokens.
local calls = {}

--- The token that closes the bracket at k.
function calls.closing(tokens, k)
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

--- The arguments of the call whose bracket is at k: pairs of first and last token.
function calls.arguments(tokens, k)
  local last, list, depth, from = calls.closing(tokens, k), {}, 0, k + 1
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

--- Whether the token at k opens the arguments of a call.
function calls.is_call(tokens, k)
  local before = tokens[k - 1]
  return tokens[k].text == "(" and before and (before.kind == "name" or before.text == ")")
    and not (tokens[k - 2] and tokens[k - 2].text == "function")
    and not (tokens[k - 4] and tokens[k - 4].text == "function")
end

--- The tokens of a range, as text.
function calls.text_of(tokens, range)
  local words = {}
  for j = range[1], range[2] do words[#words + 1] = tokens[j].text end
  return table.concat(words, " ")
end

return calls
