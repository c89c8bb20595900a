import { runLoad, type LoadOptions } from './load.ts'

// One process of the load generator: options come as its first argument, the result goes to its parent.
const options = JSON.parse(process.argv[2] ?? '{}') as LoadOptions
const result = await runLoad(options)
// The channel closes behind the message: samples of a long load take more than one write.
process.send?.(result, () => process.disconnect?.())
