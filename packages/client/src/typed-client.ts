import { childPath } from '@zabra/protocol'
import { checkCall } from './call-checks.ts'
import { remainingCallOptions } from './call-options.ts'
import { aCodec, aFunction, checkArgument } from './checks.ts'
import { abortError, BadVersionError, NoNodeError, ZooKeeperError } from './errors.ts'
import { mapInOrder } from './map-in-order.ts'
import { onAbort } from './on-abort.ts'
import { backoff } from './retry.ts'
import { decode, encode } from './codec-errors.ts'
import type { Client, NodeHandle, TypedClient, TypedValue } from './client-api.ts'
import type { CallOptions, Codec, DeleteOptions, OneShotWatch } from './types.ts'
import { syncResult } from './sync-result.ts'

/** Returns a client of decoded values over the same session. Throws a `UsageError` for something else than a codec. */
export function typedClient<T>(client: Client, codec: Codec<T>): TypedClient<T> {
  checkArgument('withCodec', 'a codec', codec, aCodec)
  return {
    client,
    create: async (path, value, options) => {
      checkCall('create', options, 'create', path)
      return client.create(path, { ...options, data: encode(codec, value, { operation: 'create', path }) })
    },
    get: async (path, options) => {
      const { data, stat, order } = await client.getData(path, options)
      return { value: decode(codec, data, { operation: 'get', path }), stat, order }
    },
    set: async (path, value, options) =>
      client.setData(path, encode(codec, value, { operation: 'set', path }), options),
    delete: ((path: string, options?: DeleteOptions) => client.delete(path, options)) as Client['delete'],
    children: (path, options) => readChildren(client, codec, path, options),
    watch: (path, options) => watchValue(client, codec, path, options),
    update: async (path, change, options = {}) => {
      checkCall('call', options, 'update', path)
      checkArgument('update', 'a change', change, aFunction)
      const nextOptions = remainingCallOptions(options, client.platform.clock)
      for (let tries = 0; ; tries++) {
        const { data, stat } = await client.getData(path, nextOptions())
        const context = { operation: 'update', path }
        const value = syncResult('a change', change(decode(codec, data, context)))
        try {
          const written = await client.setData(path, encode(codec, value, context), {
            ...nextOptions(),
            version: stat.version,
          })
          return { value, stat: written }
        } catch (error) {
          if (!(error instanceof BadVersionError)) throw error
        }
        // The first retry is immediate; a client that loses repeatedly backs off.
        if (tries > 0) await backoff(client, tries, nextOptions())
      }
    },
  }
}

/** Returns a handle of one znode over a client. */
export function nodeHandle<T>(client: Client, path: string, codec: Codec<T>): NodeHandle<T> {
  const typed = typedClient(client, codec)
  return {
    path,
    create: (value, options) => typed.create(path, value, options),
    get: (options) => typed.get(path, options),
    set: (value, options) => typed.set(path, value, options),
    update: (change, options) => typed.update(path, change, options),
    watch: (options) => typed.watch(path, options),
    exists: (options) => client.exists(path, options),
    delete: ((options?: DeleteOptions) => client.delete(path, options)) as NodeHandle<T>['delete'],
  }
}

async function readChildren<T>(
  client: Client,
  codec: Codec<T>,
  path: string,
  options: CallOptions = {},
): Promise<Map<string, TypedValue<T>>> {
  checkCall('call', options, 'children', path)
  const nextOptions = remainingCallOptions(options, client.platform.clock)
  const { children } = await client.getChildren(path, nextOptions())
  const values = new Map<string, TypedValue<T>>()
  const read = async (name: string): Promise<readonly [string, TypedValue<T>] | undefined> => {
    try {
      const child = childPath(path, name)
      const { data, stat } = await client.getData(child, nextOptions())
      return [name, { value: decode(codec, data, { operation: 'children', path: child }), stat }]
    } catch (error) {
      if (error instanceof NoNodeError) return undefined
      throw error
    }
  }
  for await (const found of mapInOrder(children.toSorted(), read)) {
    if (found !== undefined) values.set(...found)
  }
  return values
}

/** Sets a one-shot watch with each read, so that a change leads to the next read. */
async function* watchValue<T>(
  client: Client,
  codec: Codec<T>,
  path: string,
  options: { readonly signal?: AbortSignal | undefined } | undefined,
): AsyncGenerator<TypedValue<T> | undefined, void> {
  checkCall('signal', options, 'watch', path)
  const signal = options?.signal
  let last: string | undefined
  for (let tries = 0; ;) {
    if (signal?.aborted) throw abortError(signal.reason, { operation: 'watch', path })
    let watch: OneShotWatch | undefined
    try {
      watch = await watchDataOrCreation(client, path, signal)
      tries = 0
      const { data, stat } = watch
      const mark = data === undefined ? 'none' : `${stat!.czxid} ${stat!.mzxid}`
      if (mark !== last)
        yield data === undefined
          ? undefined
          : { value: decode(codec, data, { operation: 'watch', path }), stat: stat! }
      last = mark
      await firedOrAborted(watch, signal)
    } catch (error) {
      // The next read sets a watch in the next session, or over the next connection.
      const isTransient = ZooKeeperError.is(error) && (error.retryable || error.scope === 'session')
      if (!isTransient || signal?.aborted || client.state === 'expired') throw error
      await backoff(client, tries++, options)
    } finally {
      // Not awaited: a hanging connection must not hold up the consumer.
      void watch?.close()
    }
  }
}

/** Reads the data with a watch, or waits for the creation of a missing znode. */
async function watchDataOrCreation(
  client: Client,
  path: string,
  signal: AbortSignal | undefined,
): Promise<OneShotWatch> {
  const options = { signal }
  for (;;) {
    try {
      return await client.watchOnce(path, 'data', options)
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error
    }
    const creation = await client.watchOnce(path, 'exists', options)
    if (creation.stat === undefined) return creation
    void creation.close()
  }
}

/** Resolves when the watch fires; rejects when it ends or `signal` aborts. */
async function firedOrAborted(watch: OneShotWatch, signal: AbortSignal | undefined): Promise<void> {
  // Closing the watch rejects `fired`.
  const stopListening = onAbort(signal, () => void watch.close())
  try {
    await watch.fired
  } catch (error) {
    if (signal?.aborted) throw abortError(signal.reason, { operation: 'watch' })
    throw error
  } finally {
    stopListening()
  }
}
