-- spec/has.lua: has(text, part): the text must contain this part.
return function(text, part)
  require("luassert").is_truthy(text:find(part, 1, true),
    ("'%s' does not contain '%s'"):format(text, part))
end
