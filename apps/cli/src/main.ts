#!/usr/bin/env node
import module from 'node:module'

// Node 22 and later keep compiled code in a folder for temporary files, which saves a tenth of the start.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown }
enableCompileCache?.()

const { start } = await import('./start.ts')
await start()
