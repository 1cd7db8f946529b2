-- Many users in turn: `-- FILE COUNT`, where the file has one cookie a line.

local requests = {}
local turn = 0

function init(args)
  local count = tonumber(args[2])
  for cookie in io.lines(args[1]) do
    if #requests == count then break end
    requests[#requests + 1] = wrk.format("GET", nil, { Cookie = cookie })
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end
