import { resolve } from 'node:path'
import { defineConfig, type Plugin } from 'rolldown'
import { licensesOf } from '../../licenses.ts'

/** Commands that scripts run often: what they load is one file, together with the program. */
const EVERYDAY = ['ls', 'get', 'stat', 'create', 'set', 'delete', 'get-acl', 'set-acl', 'sync']

const roots = ['start.ts', ...EVERYDAY.map((name) => `commands/${name}.ts`)].map((name) =>
  resolve(import.meta.dirname, 'src', name),
)

/** The modules that the everyday commands load: those that `roots` reach by static imports. */
const everyday = new Set<string>()

/** Collects the everyday modules, and writes the licenses of bundled packages beside the program. */
const plugin: Plugin = {
  name: 'everyday-and-licenses',
  buildEnd() {
    const open = [...roots]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (everyday.has(id)) continue
      everyday.add(id)
      open.push(...(this.getModuleInfo(id)?.importedIds ?? []))
    }
  },
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source: licensesOf([...this.getModuleIds()]) })
  },
}

// A module with a top-level await cannot be among the everyday ones: a command that it loads would wait for it.
// Finding and reading a file takes half a millisecond, so that the shared modules are not split into one chunk for each set of
// commands that uses them; esbuild would. Minified: reading is a third of the time that a command takes to start.
export default defineConfig({
  input: { main: 'src/main.ts' },
  platform: 'node',
  transform: { target: 'node20' },
  // Workspace packages are bundled from their sources.
  resolve: { conditionNames: ['@zabra/source', 'import', 'node', 'default'] },
  plugins: [plugin],
  output: {
    dir: 'dist',
    cleanDir: true,
    minify: true,
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: {
      groups: [{ debugName: 'everyday', name: (id) => (everyday.has(id) ? 'everyday' : null) }],
    },
  },
})
