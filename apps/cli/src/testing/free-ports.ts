import { createServer, type AddressInfo } from 'node:net'

/** Returns ports that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const held = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(held.map((server) => new Promise((resolve) => server.once('listening', resolve))))
  const ports = held.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
