// The plotting library, which is served under this name.
export { default } from 'uplot'
