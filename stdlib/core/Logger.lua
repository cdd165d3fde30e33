-- stdlib/core/Logger.lua: the base class of loggers. Subclasses override what they need.

local class = require "ltrain.core.class"

local Logger = class.extend(nil, "Logger")

Logger.extend = class.extend

--- true: every rank logs; else rank 0 only.
Logger.all_ranks = false

--- To be overridden: a logger that writes files sets `save_dir`, `name`, `version` and `log_dir`,
--- the folder `<save_dir>/<name>/version_<version>`.
function Logger:init() end

--- To be overridden: logs a row of numbers by name, at optimizer step `step`.
function Logger:log_metrics(metrics, step) end

--- To be overridden: logs the hyper-parameters of the run, a table of plain values.
function Logger:log_hyperparams(params) end

--- To be overridden: logs `images`, a list of u8 tensors [C, H, W] with 1 to 4 channels.
function Logger:log_image(name, images, step) end

--- To be overridden: logs a text.
function Logger:log_text(name, text, step) end

--- To be overridden: logs a histogram of values: `histogram` is {edges = a list of n + 1
--- numbers, counts = a list of n, num =, min =, max =, sum =, sum_squares =}.
function Logger:log_histogram(name, histogram, step) end

--- To be overridden: writes everything that was logged to disk.
function Logger:save() end

--- To be overridden: ends the run; status is "success", "failed" or "interrupted".
function Logger:finalize(status) self:save() end

--- To be overridden: called if the run is resumed from a checkpoint saved at `step`: removes what
--- was logged after it.
function Logger:resume(step) end

return Logger
