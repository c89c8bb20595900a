import { resolveSrv } from 'node:dns/promises'

/** Where the SRV records of a name point to. Rejects when it has none. `resolve` is another resolver than the system's. */
export async function nodeServices(
  name: string,
  resolve: (name: string) => Promise<{ name: string; port: number }[]> = resolveSrv,
): Promise<{ host: string; port: number }[]> {
  const records = await resolve(name)
  return records.map(({ name: host, port }) => ({ host, port }))
}
