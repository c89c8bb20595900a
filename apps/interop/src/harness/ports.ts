import { createServer, type Server } from 'node:net'

// Below the kernel's range of ephemeral ports: a server that is killed and restarted must find its port unused.
const FIRST = 15_000
const END = 30_000
/** A process that listens on the first port of a block owns the whole block. Processes need no other coordination. */
const BLOCK = 100

/** Yields each port once. A process keeps its blocks, so a stopped server keeps its port. */
async function* ownPorts(): AsyncGenerator<number, undefined> {
  for (let first = FIRST; first < END; first += BLOCK) {
    const claim = await listen(first)
    if (claim === undefined) continue
    // The kernel releases the block when this process exits for any reason.
    claim.unref()
    for (let port = first + 1; port < first + BLOCK; port++) if (await isFree(port)) yield port
  }
  return undefined
}

const ports = ownPorts()

/** Returns a port that no other call returns, in this test file or in a concurrent one. */
export async function freePort(): Promise<number> {
  const { value } = await ports.next()
  if (value === undefined) throw new Error(`Found no free port between ${FIRST} and ${END}`)
  return value
}

/** Returns whether a port is free: programs that do not use this module may listen on it. */
async function isFree(port: number): Promise<boolean> {
  const server = await listen(port)
  if (server === undefined) return false
  await new Promise((closed) => server.close(closed))
  return true
}

function listen(port: number): Promise<Server | undefined> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(undefined))
    server.listen(port, '127.0.0.1', () => done(server))
  })
}
