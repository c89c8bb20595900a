import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { RoutedInterface } from './check-network.ts'
import { readIfExists } from './machine-facts.ts'

/** Any port: nothing is sent. */
const PORT = 9

/**
 * Resolves to the interface by which packets to an address leave this machine, and its MTU; undefined where that cannot be seen, as on
 * systems without /sys. Sends nothing: connecting a UDP socket only chooses the route.
 */
export async function interfaceTo(address: string): Promise<RoutedInterface | undefined> {
  const own = await new Promise<string | undefined>((resolve) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
    const end = (found?: string): void => {
      socket.close()
      resolve(found)
    }
    socket.once('error', () => end())
    socket.connect(PORT, address, () => end(socket.address().address))
  })
  const name = Object.entries(networkInterfaces()).find(([, addresses]) =>
    addresses?.some((one) => one.address === own),
  )?.[0]
  if (name === undefined) return undefined
  const mtu = Number(readIfExists(`/sys/class/net/${name}/mtu`))
  return mtu > 0 ? { name, mtu } : undefined
}
