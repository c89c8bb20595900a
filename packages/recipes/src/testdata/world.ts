/** How tests run servers and clients on a clock and a network that they control. */
export { bytes, text, Tapped, World, type Interference } from '../../../client/src/testdata/world.ts'
