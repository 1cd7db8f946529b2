-- Sends the requests of a file in turn: `-- FILE LENGTH COUNT FIRST`, each LENGTH bytes long, from number FIRST on.

local file, length, count, turn, only

function init(args)
  file = assert(io.open(args[1], "rb"))
  length, count, turn = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  if count == 1 then
    only = file:read(length)
  else
    file:seek("set", turn * length)
  end
  io.stderr:write("ready\n")
end

function request()
  if only then return only end
  if turn == count then
    turn = 0
    file:seek("set", 0)
  end
  turn = turn + 1
  return file:read(length)
end
