import { remainingCallOptions } from './call-options.ts'
import { BadVersionError } from './errors.ts'
import { backoff } from './retry.ts'
import type { Client, TypedClient } from './client-api.ts'
import type { Codec } from './types.ts'

/** Returns a client of decoded values over the same session. */
export function typedClient<T>(client: Client, codec: Codec<T>): TypedClient<T> {
  return {
    client,
    create: async (path, value, options) => client.create(path, codec.encode(value), options),
    get: async (path, options) => {
      const { data, stat, order } = await client.getData(path, options)
      return { value: codec.decode(data), stat, order }
    },
    set: async (path, value, options) => client.setData(path, codec.encode(value), options),
    update: async (path, change, options = {}) => {
      const nextOptions = remainingCallOptions(options, client.platform.clock)
      for (let tries = 0; ; tries++) {
        const { data, stat } = await client.getData(path, nextOptions())
        const value = change(codec.decode(data))
        try {
          const written = await client.setData(path, codec.encode(value), {
            ...nextOptions(),
            version: stat.version,
          })
          return { value, stat: written }
        } catch (error) {
          if (!(error instanceof BadVersionError)) throw error
        }
        // The first retry is immediate; a client that loses repeatedly backs off.
        if (tries > 0) await backoff(client, tries)
      }
    },
  }
}
