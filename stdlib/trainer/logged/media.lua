--- stdlib/trainer/logged/media.lua: `self:log_image`, `self:log_text`, `self:log_histogram`: what
--- goes to the loggers at once, in the form that all of them take.
--
-- Without loggers (ranks above 0, fast_dev_run, the sanity check) nothing is computed.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"
local metrics = require "ltrain.trainer.logged.metrics"

local media = {}

local STEP <const> = { step = { type = "integer", min = 0 } }
local HISTOGRAM <const> = { step = STEP.step,
  bins = { type = "integer", default = 30, min = 1, max = 10000 } }

-- The step of an entry, nil where nobody takes it.
local function check(trainer, where, name, options, spec)
  config.argument(name, "string", where, "name")
  local o = config.check(options, spec, where)
  local running = trainer.running
  if #trainer.loggers == 0 or trainer.sanity_checking then return nil end
  if o.step then return o.step, o end
  if running then return metrics.step_of(running), o end
  return trainer.progress and trainer.progress.stepped or 0, o
end

local function wrong(name, value)
  errors.blame("log_image: '%s' must be a tensor [C, H, W] or [H, W] of u8, of booleans or of "
    .. "floats from 0 to 1, a tensor [N, C, H, W], or a list of them: got %s", name,
    errors.show(value))
end

-- One image as a u8 tensor [C, H, W].
local function as_bytes(name, image)
  local dtype = image.dtype
  if image.ndim == 2 then image = image:unsqueeze(1) end
  if image.ndim ~= 3 or image.shape[1] < 1 or image.shape[1] > 4 or image:numel() == 0 then
    wrong(name, image)
  end
  image = image:detach():to "cpu"
  if dtype == "u8" then return image end
  if dtype == "bool" then return image:to "u8" * 255 end
  if not is_float(dtype) then wrong(name, image) end
  image = image:to "f32"
  local low, high = image:min():item(), image:max():item()
  if not (low >= 0 and high <= 1) then
    errors.blame("log_image: '%s': floats must be from 0 to 1: got %s to %s", name,
      errors.show(low), errors.show(high))
  end
  return (image * 255):round():to "u8"
end

local function list_of(name, image)
  if c.is_tensor(image) then
    if image.ndim ~= 4 then return { as_bytes(name, image) } end
    local list = {}
    for i = 1, image.shape[1] do list[i] = as_bytes(name, image:select(1, i)) end
    return list
  elseif type(image) ~= "table" or getmetatable(image) ~= nil or #image == 0 then
    wrong(name, image)
  end
  local list = {}
  for i, one in ipairs(image) do
    if not c.is_tensor(one) then wrong(name, one) end
    list[i] = as_bytes(name, one)
  end
  return list
end

--- trainer:_log_image(name, image, {step =}).
function media._log_image(trainer, name, image, options)
  local step = check(trainer, "log_image", name, options, STEP)
  if not step then return end
  local _ <close> = c.no_grad()
  local images = list_of(name, image)
  for _, logger in ipairs(trainer.loggers) do logger:log_image(name, images, step) end
end

-- A text as UTF-8, which files of JSON and TensorBoard's need: U+FFFD stands for a byte of no
-- character, as at the ends of what a model of bytes has generated.
local function as_utf8(text)
  local parts, at = {}, 1
  repeat
    local _, broken = utf8.len(text, at)
    parts[#parts + 1] = text:sub(at, (broken or #text + 1) - 1)
    if broken then parts[#parts + 1], at = "\u{FFFD}", broken + 1 end
  until not broken
  return table.concat(parts)
end

--- trainer:_log_text(name, text, {step =}).
function media._log_text(trainer, name, text, options)
  local step = check(trainer, "log_text", name, options, STEP)
  config.argument(text, "string", "log_text", "text")
  if not step then return end
  text = as_utf8(text)
  for _, logger in ipairs(trainer.loggers) do logger:log_text(name, text, step) end
end

--- trainer:_log_histogram(name, values, {bins =, step =}).
function media._log_histogram(trainer, name, values, options)
  local step, o = check(trainer, "log_histogram", name, options, HISTOGRAM)
  if not c.is_tensor(values) then
    errors.blame("log_histogram: '%s' must be a tensor: got %s", name, errors.show(values))
  end
  if not step then return end
  local _ <close> = c.no_grad()
  local histogram = require "ltrain.core.histogram"(values, o.bins)
  if not histogram then
    trainer:warn(("log_histogram: '%s' has no finite element: it is left out"):format(name))
    return
  end
  for _, logger in ipairs(trainer.loggers) do logger:log_histogram(name, histogram, step) end
end

return media
