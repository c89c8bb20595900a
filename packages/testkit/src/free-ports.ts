import { nodeNetwork } from '@zabra/runtime/node/dial'

/** Returns different ports that were free a moment ago; at all addresses of this machine with the host `0.0.0.0`. */
export async function freePorts(count: number, host = '127.0.0.1'): Promise<number[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, () => nodeNetwork.listen({ host, port: 0 }, (one) => one.destroy())),
  )
  const ports = listeners.map(({ address }) => address.port)
  await Promise.all(listeners.map((listener) => listener.close()))
  return ports
}
