-- A sign-in that failed is a redirect too: counts the answers that do not lead to the home page.

local threads = {}
wrong = 0

function setup(thread)
  table.insert(threads, thread)
end

function response(status, headers)
  if headers["Location"] ~= "/" and headers["location"] ~= "/" then wrong = wrong + 1 end
end

function done()
  local sum = 0
  for _, thread in ipairs(threads) do sum = sum + thread:get("wrong") end
  if sum > 0 then print("Wrong answers: " .. sum) end
end
