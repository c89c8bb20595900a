import { callOptions } from './calls.ts'
import type { Client, Codec, TypedClient } from './types.ts'

/** Values instead of bytes, over the same session. */
export function typed<T>(client: Client, codec: Codec<T>): TypedClient<T> {
  return {
    client,
    create: async (path, value, options) => client.create(path, codec.encode(value), options),
    get: async (path, options) => {
      const { data, stat, order } = await client.getData(path, options)
      return { value: codec.decode(data), stat, order }
    },
    set: async (path, value, options) => client.setData(path, codec.encode(value), options),
    update: async (path, change, options = {}) => {
      for (;;) {
        const { data, stat } = await client.getData(path, callOptions(options))
        const value = change(codec.decode(data))
        try {
          return {
            value,
            stat: await client.setData(path, codec.encode(value), {
              ...callOptions(options),
              version: stat.version,
            }),
          }
        } catch (error) {
          if ((error as { code?: unknown }).code !== 'BAD_VERSION') throw error
        }
      }
    },
  }
}
