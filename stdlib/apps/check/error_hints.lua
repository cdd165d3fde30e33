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
  { "logits of (%b[]) need targets of %b[], got %1$", "targets of one-hot rows are floats, "
    .. "targets:float(), or ids, targets:argmax(-1)" },
  { "logits of (%b[]) need targets of %b[], got %1[^,%d]", "targets of one-hot rows are floats, "
    .. "targets:float(), or ids, targets:argmax(-1)" },
  { "targets are ids", "give the last layer as many outputs as there are classes, and count labels "
    .. "from 0" },
  { "the last dim of x is not weight's: (%b[]) x (%b[])",
    "%1 ends with the in_features that the layer needs; its weight is %2" },
  { "shapes differ", "bring both to one shape with view, squeeze or unsqueeze" },
  { "has no configure_optimizers", "define it: function Net:configure_optimizers() return "
    .. "lt.optim.Adam(self:parameters(), {lr = 1e-3}) end" },
  { "has no (%w+_step)", "define %1(batch)" },
  { "no training data", "return data = {train = loader}, or pass a loader to fit" },
  { "nothing called '([^']+)' was logged", "log it: self:log('%1', value)" },
  { "optimizers need manual optimization",
    "return one, or set self.automatic_optimization = false" },
  { "No such file or directory", "check the path: it is relative to the current folder" },
  { "attempt to index a nil value %(field '([^']+)'%)", "set %1 before it is used, or correct its "
    .. "name" },
  { "attempt to index a nil value %(local '([^']+)'%)", "check where %1 comes from: a missing "
    .. "file, a batch with other fields, a position counted from 0" },
  { "attempt to call a nil value %(%w+ '([^']+)'%)", "define %1, or correct its name" },
  { "attempt to perform arithmetic on a nil value %(%w+ '([^']+)'%)", "set %1 before it is used" },
  { "colon", "write object:method(...), with a colon" },
  { "not finite", "check the operation that computed it: clamp the arguments of logs, roots and "
    .. "divisions" },
}

-- Errors of names that are not here say what to write, or why there is nothing, after "; ".
local ANSWERED <const> = { "there is no .-; ", "^attempt to [^;]*%); " }

--- The remedy for an error's text; nil where none is known, or the text has one.
return function(text)
  for _, pattern in ipairs(ANSWERED) do
    if text:find(pattern) then return nil end
  end
  for _, row in ipairs(ROWS) do
    local captures = table.pack(text:match(row[1]))
    if captures.n > 0 and captures[1] then
      return (row[2]:gsub("%%(%d)", function(k) return captures[tonumber(k)] end))
    end
  end
end
