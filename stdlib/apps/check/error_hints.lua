--- stdlib/apps/check/error_hints.lua: hints for errors that a script raises, by patterns of their
--- texts.

-- A pattern, and the remedy, which may use what the pattern has captured.
local ROWS <const> = {
  { "did you mean '([^']+)'", "write %1" },
  { "nothing was returned", "end training_step with `return loss`" },
  { "depends on no parameter that requires grad",
    "compute it from the module's outputs, without detach(), item() or no_grad" },
  { "argument %d must be a tensor, got nil", "check where it comes from: a forward that ends "
    .. "without return, a field that the batch does not have" },
  { "cross_entropy: needs a floating tensor, got i64", "logits come first, labels second: "
    .. "lt.cross_entropy(logits, labels)" },
  { "ids must be integers", "convert the labels: labels:to 'i64'" },
  { "logits of (%b[]) need targets of %b[], got %1", "targets of one-hot rows are floats, "
    .. "targets:float(), or ids, targets:argmax(-1)" },
  { "targets are ids", "give the last layer as many outputs as there are classes, and count labels "
    .. "from 0" },
  { "the last dim of x is not weight's: (%b[]) x (%b[])",
    "%1 ends with the in_features that the layer needs; its weight is %2" },
  { "shapes differ", "bring both to one shape with view, squeeze or unsqueeze" },
  { "nothing called '([^']+)' was logged", "log it: self:log('%1', value)" },
  { "No such file or directory", "check the path: it is relative to the current folder" },
  { "attempt to index a nil value %(local '([^']+)'%)", "check where %1 comes from: a missing "
    .. "file, a batch with other fields, a position counted from 0" },
  { "attempt to %a+ .-a nil value %(%w+ '([^']+)'%)", "set %1 before it is used, or correct its "
    .. "name" },
  { "not finite", "check the operation that computed it: clamp the arguments of logs, roots and "
    .. "divisions" },
}

--- The remedy for an error's text; nil where none is known, or the text says what to write.
return function(text)
  if text:find "there is no .-; " or text:find "^attempt to [^;]*%); " then return nil end
  for _, row in ipairs(ROWS) do
    local first, second = text:match(row[1])
    if first then return (row[2]:gsub("%%(%d)", { ["1"] = first, ["2"] = second })) end
  end
end
