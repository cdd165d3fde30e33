-- spec/has.lua: has(text, part): the text must tell of this part, as it stands.
return function(text, part)
  require("luassert").is_truthy(text:find(part, 1, true),
    ("'%s' does not tell of '%s'"):format(text, part))
end
